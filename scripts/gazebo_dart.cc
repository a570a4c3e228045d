// A drive of a robot in DART, Gazebo's physics engine, through Gazebo's own plugin for it; scripts/gazebo_dart.py runs it.
//
//   gazebo_dart WORLD.sdf ROBOT.urdf LINK SECONDS JOINT=SPEED...
//
// Every joint not named is held at speed 0. Each step of the world writes a line: time [s], then x, y, yaw [m, m, rad] of
// the link in the world and its speeds [m/s, m/s, rad/s] forward, to the left and about the vertical.

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <iomanip>
#include <iostream>
#include <map>
#include <string>

#include <ignition/physics/ForwardStep.hh>
#include <ignition/physics/FrameSemantics.hh>
#include <ignition/physics/GetEntities.hh>
#include <ignition/physics/Joint.hh>
#include <ignition/physics/RequestEngine.hh>
#include <ignition/physics/sdf/ConstructModel.hh>
#include <ignition/physics/sdf/ConstructWorld.hh>
#include <ignition/plugin/Loader.hh>
#include <sdf/Model.hh>
#include <sdf/Physics.hh>
#include <sdf/Root.hh>
#include <sdf/World.hh>

namespace physics = ignition::physics;

using Features = physics::FeatureList<physics::ForwardStep, physics::GetEntities, physics::LinkFrameSemantics,
                                      physics::GetBasicJointProperties, physics::SetJointVelocityCommandFeature,
                                      physics::sdf::ConstructSdfWorld, physics::sdf::ConstructSdfModel>;

static sdf::Root Read(const char *file)
{
  sdf::Root root;
  const sdf::Errors errors = root.Load(file);
  for (const sdf::Error &error : errors)
    std::cerr << file << ": " << error << "\n";
  if (!errors.empty())
    std::exit(2);
  return root;
}

int main(int count, char **words)
{
  if (count < 5)
  {
    std::cerr << "usage: gazebo_dart WORLD.sdf ROBOT.urdf LINK SECONDS JOINT=SPEED...\n";
    return 2;
  }
  const sdf::Root hall = Read(words[1]), robot = Read(words[2]);
  std::map<std::string, double> speeds;
  for (int k = 5; k < count; ++k)
  {
    const std::string word(words[k]);
    const std::size_t at = word.find('=');
    speeds[word.substr(0, at)] = std::stod(word.substr(at + 1));
  }

  ignition::plugin::Loader loader;
  loader.LoadLib(DARTSIM_PLUGIN);
  const auto plugin = loader.Instantiate("ignition::physics::dartsim::Plugin");
  const auto engine = physics::RequestEngine3d<Features>::From(plugin);
  if (!engine)
  {
    std::cerr << DARTSIM_PLUGIN << ": no engine with the features wanted\n";
    return 2;
  }
  const sdf::World &description = *hall.WorldByIndex(0);
  const auto world = engine->ConstructWorld(description);
  const auto model = world->ConstructModel(*robot.Model());
  const auto link = model->GetLink(words[3]);
  if (!link)
  {
    std::cerr << words[3] << ": no such link after the conversion to SDF\n";
    return 2;
  }

  const double step = description.PhysicsDefault()->MaxStepSize();
  physics::ForwardStep::Input input;
  physics::ForwardStep::State state;
  physics::ForwardStep::Output output;
  input.Get<std::chrono::steady_clock::duration>() =
      std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::duration<double>(step));
  std::cout << std::setprecision(12);
  for (int k = 1; k <= std::lround(std::stod(words[4]) / step); ++k)
  {
    for (std::size_t i = 0; i < model->GetJointCount(); ++i)
    {
      const auto joint = model->GetJoint(i);
      const auto found = speeds.find(joint->GetName());
      if (joint->GetDegreesOfFreedom() == 1)
        joint->SetVelocityCommand(0, found == speeds.end() ? 0.0 : found->second);
    }
    world->Step(output, state, input);
    const auto now = link->FrameDataRelativeToWorld();
    const Eigen::Matrix3d turned = now.pose.linear();
    const Eigen::Vector3d moves = turned.transpose() * now.linearVelocity;
    std::cout << k * step << " " << now.pose.translation().x() << " " << now.pose.translation().y() << " "
              << std::atan2(turned(1, 0), turned(0, 0)) << " " << moves.x() << " " << moves.y() << " "
              << now.angularVelocity.z() << "\n";
  }
  return 0;
}
